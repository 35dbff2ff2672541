/** What is known to be a key, a token or a certificate by its own form, wherever it stands. */

/** Each with what it begins with, and how long it is at least. */
const PREFIXED = [
  "(?:sk|rk|pk)[-_](?:ant-|proj-|live_|test_)?[A-Za-z0-9_-]{16,}",
  "(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}",
  "gl(?:pat|rt|dt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_-]{16,}",
  "xox[abceoprs]-[A-Za-z0-9-]{10,}",
  "xapp-[0-9]-[A-Za-z0-9-]{10,}",
  "AIza[A-Za-z0-9_-]{30,}",
  "GOCSPX-[A-Za-z0-9_-]{20,}",
  "ya29\\.[A-Za-z0-9_-]{20,}",
  "npm_[A-Za-z0-9]{30,}",
  "pypi-[A-Za-z0-9_-]{20,}",
  "rubygems_[0-9a-f]{40,}",
  "oy2[a-z0-9]{43}",
  "cio[A-Za-z0-9]{32}",
  "dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
  "(?:hf|gsk|r8)_[A-Za-z0-9]{20,}",
  "(?:xai|pplx)-[A-Za-z0-9]{30,}",
  "do[por]_v1_[a-f0-9]{40,}",
  "hv[bsr]\\.[A-Za-z0-9_-]{20,}",
  "SG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{16,}",
  "whsec_[A-Za-z0-9+/=]{20,}",
  "shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
  "sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}",
  "dapi[a-f0-9]{32}",
  "lin_(?:api|oauth)_[A-Za-z0-9]{30,}",
  "(?:secret|ntn)_[A-Za-z0-9]{40,}",
  "figd_[A-Za-z0-9_-]{20,}",
  "nfp_[A-Za-z0-9]{30,}",
  "FlyV1 fm[12][A-Za-z]_[A-Za-z0-9+/=]{20,}",
  "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{20,}",
  "dp\\.(?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9._-]{20,}",
  "[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_-]{20,}",
  "pul-[a-f0-9]{40}",
  "gl(?:sa|c)_[A-Za-z0-9_+/=-]{30,}",
  "NRAK-[A-Z0-9]{20,}",
  "sntry[su]_[A-Za-z0-9_+/=-]{20,}",
  "sb[ps]_[a-z0-9_]{30,}",
  "AT(?:ATT3|BB)[A-Za-z0-9_=-]{20,}",
  "PMAK-[a-f0-9]{20,}",
  "HRKU-[A-Za-z0-9_-]{30,}",
  "AGE-SECRET-KEY-1[A-Z0-9]{50,}",
  "key-[0-9a-f]{32}",
];

const SECRET_VALUES = [
  new RegExp(`(?<![A-Za-z0-9])(?:${PREFIXED.join("|")})`),
  /(?<![A-Z0-9])(AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])/,
  /(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}/,
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\./,
  /-----BEGIN [A-Z ]{0,40}(PRIVATE KEY|CERTIFICATE)/,
  /^(Basic|Bearer|Token)\s+[A-Za-z0-9+/=._-]{12,}/i,
];

export function looksLikeToken(value: string): boolean {
  return SECRET_VALUES.some((pattern) => pattern.test(value));
}

/** `password=…`, `"client_secret": "…"`, `AccountKey=…`: a setting among others that is a login, with a value. */
const SETTING =
  /(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|account|access|shared|auth|private|signing|encryption)[-_ ]?(?:access[-_ ]?)?key|signature|(?<![a-z])(?:pw|sig))["']?\s{0,8}(?:=|:(?!\/\/))\s{0,8}["']?[^\s;,&"'})]/i;

/** Whether a text of several settings, such as the address of a database, has a login among them. */
export function namesLogin(value: string): boolean {
  return SETTING.test(value);
}
