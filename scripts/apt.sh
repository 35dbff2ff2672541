# Debian packages, announced and bounded in time. Sourced.
# shellcheck shell=bash

can_apt() { [ "$(id -u)" = 0 ] && [ -z "${VIV_NO_APT:-}" ] && command -v apt-get >/dev/null; }

# apt_install LOG PACKAGE...: false if they could not be installed within the time.
apt_install() {
  local log=$1
  shift
  echo "Installing Debian packages: $* (VIV_NO_APT=1 turns this off)" >&2
  # The lists of a fresh machine are empty or old, so a first failure is not the last word.
  apt_bounded install -y --no-install-recommends "$@" >"$log" 2>&1 ||
    { apt_bounded update && apt_bounded install -y --no-install-recommends "$@"; } >>"$log" 2>&1
}

apt_bounded() {
  DEBIAN_FRONTEND=noninteractive timeout -k 10 "${VIV_APT_SECONDS:-90}" \
    apt-get -q -o DPkg::Lock::Timeout=30 -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@" </dev/null
}
