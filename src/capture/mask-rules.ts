/** What of a machine never exists in a sandbox, and what of a home folder does. Data only; docs/THREAT_MODEL.md explains it. */

/** Folders that are there but empty, whatever is or will be in them. */
export const EMPTY_FOLDERS = [
  "/home", "/root", "/mnt", "/media", "/tmp", "/var/tmp", "/boot", "/var/backups", "/var/crash", "/var/mail", "/var/spool/mail", "/var/spool/cron",
  "/var/spool/postfix", "/var/spool/cups", "/var/spool/at", "/var/lib/vivarium", "/etc/vivarium", "/etc/ssl/private", "/etc/ssh/ssh_config.d",
];

/** Folders whose subfolders keep their names, for programs that expect them. */
export const HOLLOW_FOLDERS = ["/var/log"];

/** Files and folders that are not there, also when they appear in reality later. */
export const ABSENT = [
  ...["docker", "containerd", "containers", "kubelet", "rancher", "k3s", "cni", "etcd", "postgresql", "pgsql", "mysql", "mariadb", "mongodb", "redis", "rabbitmq", "elasticsearch",
    "opensearch", "influxdb", "clickhouse", "cassandra", "neo4j", "couchdb", "memcached", "grafana", "prometheus", "vault", "consul", "nomad", "jenkins", "gitea", "gitlab",
    "libvirt", "snapd", "lxd", "lxc", "lxcfs", "machines", "private", "NetworkManager", "bluetooth", "sudo", "sss", "samba", "fprint", "iwd", "tailscale", "zerotier-one",
    "openvpn", "letsencrypt", "cloud", "waagent", "amazon", "google", "fwupd", "AccountsService", "gdm3", "lightdm", "sddm", "colord", "flatpak", "portables", "tpm", "tpm2-tss",
    "systemd/coredump", "systemd/credential.secret", "systemd/random-seed", "systemd/home", "systemd/pstore", "aide", "krb5kdc", "ldap", "dhcp", "ntpsec"].map((name) => `/var/lib/${name}`),
  ...["kubernetes", "rancher", "wireguard", "openvpn", "letsencrypt", "NetworkManager/system-connections", "docker/key.json", "containers/auth.json", "krb5.keytab", "ppp/chap-secrets",
    "ppp/pap-secrets", "apt/auth.conf", "apt/auth.conf.d", "shadow-", "gshadow-", "passwd-", "group-", "subuid-", "subgid-", "security/opasswd", "msmtprc", "ipsec.secrets", "ipsec.d/private",
    "racoon/psk.txt", "snmp/snmpd.conf", "exim4/passwd.client", "postfix/sasl_passwd", "postfix/sasl_passwd.db", "davfs2/secrets", "cups/ssl", "pki/tls/private", "crypttab", "luks", "vault.d", "consul.d", "nomad.d",
    "boto.cfg", "cloud", "sssd/sssd.conf", "ldap.secret", "libnss-ldap.secret", "pam_ldap.secret", "credstore", "credstore.encrypted", "ssh/ssh_host_rsa_key", "ssh/ssh_host_ecdsa_key",
    "ssh/ssh_host_ed25519_key", "ssh/ssh_host_dsa_key"].map((name) => `/etc/${name}`),
  "/var/cache/debconf/passwords.dat", "/var/cache/private", "/var/snap", "/var/www/.ssh", "/swapfile", "/swap.img", "/lost+found", "/.dockerenv", "/.autorelabel",
];

/** Files of /etc that others may not read, but that programs inside need and that hold no secret. */
export const READABLE_INSIDE = ["/etc/sudoers", "/etc/sudoers.d", "/etc/.pwd.lock", "/etc/at.deny", "/etc/default/cacerts", "/etc/ssl/certs/java/cacerts", "/etc/polkit-1"];

/** Toolchains and caches of a home folder that exist inside, copy-on-write. */
export const TOOLCHAINS = [
  ".nvm", ".fnm", ".volta", ".nodenv", ".n", ".bun", ".deno", ".npm", ".npm-global", ".node-gyp", ".yarn/berry", ".pnpm-store",
  ".cargo", ".rustup", ".pyenv", ".rbenv", ".rvm", ".gem", ".sdkman", ".asdf", ".jenv", ".goenv", ".g", "go/pkg", "go/bin", "sdk",
  ".m2/repository", ".m2/wrapper", ".gradle/caches", ".gradle/wrapper", ".ivy2/cache", ".sbt/boot", ".nuget/packages", ".dotnet/tools",
  ".ghcup", ".opam", ".elan", ".juliaup", ".pub-cache", ".mix", ".swiftpm/cache", ".conan2/p", ".vcpkg", ".stack/programs",
  ".local/bin", ".local/lib", ".local/pipx", ".local/share/pnpm", ".local/share/uv", ".local/share/mise", ".local/share/fnm", ".local/share/pipx", ".local/share/virtualenvs",
  ".local/share/claude/versions", ".opencode/bin", ".poetry/bin", ".composer/cache",
  ...["pip", "pnpm", "yarn", "go-build", "uv", "node", "node-gyp", "typescript", "deno", "bun", "pypoetry", "pre-commit", "ms-playwright", "puppeteer", "Cypress", "electron", "electron-builder",
    "composer", "ccache", "sccache", "mise", "turbo", "prisma", "golangci-lint", "zig", "huggingface/hub"].map((name) => `.cache/${name}`),
];

/** What of those holds logins or records of commands. */
export const TOOLCHAIN_SECRETS = [
  ".cargo/credentials", ".cargo/credentials.toml", ".npm/_logs", ".gem/credentials", ".pub-cache/credentials.json", ".local/share/uv/credentials", ".local/share/pnpm/rc",
  ".cache/huggingface/token", ".cache/pypoetry/auth.toml", ".rustup/.credentials", ".deno/auth", ".mix/hex.config",
];
