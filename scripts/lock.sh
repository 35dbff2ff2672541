# One set-up at a time in a checkout. Sourced.
# shellcheck shell=bash

# take_lock FILE: waits for another set-up; the lock ends with this shell.
take_lock() {
  if command -v flock >/dev/null; then
    exec 9>"$1"
    flock -n 9 && return
    echo "Waiting for another set-up of this folder to end." >&2
    flock 9
  else
    take_folder_lock "$1.d"
  fi
}

# macOS has no flock. Making a folder is atomic; the holder's number in it tells a dead holder.
take_folder_lock() {
  local told= holder
  until mkdir "$1" 2>/dev/null; do
    holder=$(cat "$1/holder" 2>/dev/null)
    if [ -n "$holder" ] && ! kill -0 "$holder" 2>/dev/null; then
      # Moving is atomic too, so that of several waiters one clears it away.
      mv "$1" "$1.$$" 2>/dev/null && rm -rf "$1.$$"
      continue
    fi
    [ -n "$told" ] || echo "Waiting for another set-up of this folder to end." >&2
    told=yes
    sleep 0.2
  done
  echo $$ >"$1/holder"
  # shellcheck disable=SC2064
  trap "rm -rf '$1'" EXIT
}
