/** Completion scripts. They ask viv which words fit: `viv completion words -- WORD...`. */

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** Lines of an answer that stand for what the shell finds by itself; no word that viv offers begins with a colon. */
export const FILES = ":files";
export const PROGRAMS = ":programs";

const BASH = `# viv completion for bash: source <(viv completion bash)
_viv() {
  local current="\${COMP_WORDS[COMP_CWORD]}" line IFS=$'\\n'
  if [ "$current" = "=" ]; then current=""; fi
  COMPREPLY=()
  while read -r line; do
    case "$line" in
      ${FILES})
        COMPREPLY+=($(compgen -f -- "$current" || :))
        compopt -o filenames 2>/dev/null || :
        ;;
      ${PROGRAMS}) COMPREPLY+=($(compgen -c -- "$current" || :)) ;;
      *:)
        COMPREPLY+=("$line")
        compopt -o nospace 2>/dev/null || :
        ;;
      *) COMPREPLY+=("$line") ;;
    esac
  done < <(VIV_NO_START=1 "\${COMP_WORDS[0]}" completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _viv viv
`;

const ZSH = `#compdef viv
# viv completion for zsh: source <(viv completion zsh)
_viv() {
  local line
  local -a found
  while IFS= read -r line; do
    case "$line" in
      ${FILES}) _files ;;
      ${PROGRAMS}) _command_names ;;
      *:) compadd -S '' -- "$line" ;;
      *) found+=("$line") ;;
    esac
  done < <(VIV_NO_START=1 "\${words[1]}" completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  (( \${#found} )) && compadd -- "\${found[@]}"
}
# Loaded from fpath, it is called; sourced, it is announced.
if [ "\${funcstack[1]-}" = "_viv" ]; then _viv "$@"; else compdef _viv viv; fi
`;

const FISH = `# viv completion for fish: viv completion fish | source
function __viv_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in (env VIV_NO_START=1 $before[1] completion words --describe -- $before[2..-1] "$current" 2>/dev/null)
        switch $line
            case ${FILES}
                __fish_complete_path "$current"
            case ${PROGRAMS}
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end
complete -c viv -f -a '(__viv_complete)'
`;

export function completionScript(shell: Shell): string {
  return { bash: BASH, zsh: ZSH, fish: FISH }[shell];
}
