// The scripts that make a shell call `berth complete -- WORDS`. The words are passed as they are: nothing of the line is evaluated before it is run.

const BASH = String.raw`_berth () {
  local line="${'$'}{COMP_LINE:0:COMP_POINT}" words value text
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local current="${'$'}{words[-1]}"
  # Bash completes what comes after a colon alone.
  local before="${'$'}{current%"${'$'}{current##*:}"}"
  [[ $COMP_WORDBREAKS == *:* ]] || before=
  COMPREPLY=()
  while IFS=$'\t' read -r value text; do
    [[ $value == :* ]] || COMPREPLY+=("${'$'}{value#"$before"}")
  done < <(berth complete -- "${'$'}{words[@]:1}" 2>/dev/null)
}
complete -o default -F _berth berth`

const ZSH = String.raw`#compdef berth
_berth () {
  local -a found
  local value text
  while IFS=$'\t' read -r value text; do
    [[ $value == :* ]] || found+=("${'$'}{value//:/\\:}:$text")
  done < <(berth complete -- "${'$'}{(@)words[2,CURRENT]}" 2>/dev/null)
  _describe berth found || _files
}
compdef _berth berth`

const FISH = String.raw`function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  berth complete -- $words[2..-1] 2>/dev/null | string match --invert ':*'
end
complete --command berth --arguments '(__berth_complete)'`

export const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH }
