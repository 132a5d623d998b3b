// The program that buildah starts the containers of a build's steps with: a script that stands before crun.
import { MEMORY } from './guest-paths.ts'

/** in the guest */
export const STEP_RUNTIME = `${MEMORY}/berth-runtime`
const RUNTIME = 'crun'

/**
 * While a step runs, buildah (1.28 to 1.39) starts the runtime ten times a second to ask for the state of the step's container. Where processors are emulated, such a start takes about as long as that, so a step had
 * half of its processor. Here the answer about a container that runs comes when it has ended.
 * @param beforeCreate shell commands before a container is created from the folder `$bundle`
 */
export function stepRuntime (beforeCreate?: string): string {
  return [
    '#!/bin/sh',
    'before= bundle= command=',
    'for word in "$@"; do',
    '  case "$before" in --bundle|-b) bundle=$word ;; esac',
    '  case "$word" in create|state) command=${command:-$word} ;; esac',
    '  before=$word',
    'done',
    'case "$command" in',
    ...beforeCreate === undefined ? [] : [`  create) if [ -n "$bundle" ]; then ${beforeCreate} || exit 1; fi ;;`],
    '  state)',
    `    state=$(${RUNTIME} "$@") || exit`,
    '    pid=$(printf \'%s\\n\' "$state" | sed -n \'s/^ *"pid": *\\([1-9][0-9]*\\),*$/\\1/p\')',
    '    case "$state" in *\'"status": "running"\'*) [ -z "$pid" ] || tail --pid="$pid" --sleep-interval=0.1 --follow /dev/null ;; esac ;;',
    'esac',
    `exec ${RUNTIME} "$@"`,
    ''
  ].join('\n')
}
