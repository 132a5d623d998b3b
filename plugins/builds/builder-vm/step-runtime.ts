// The program that buildah starts the containers of a build's steps with: a script that stands before crun.
import { MEMORY } from './guest-paths.ts'

/** in the guest */
export const STEP_RUNTIME = `${MEMORY}/berth-runtime`
const RUNTIME = 'crun'

/**
 * While a step runs, buildah asks ten times a second in what state its container is, and nothing else (waiting for the end in runUsingRuntime, 1.28 to 1.39); each of these starts of crun takes about as long as that
 * where processors are emulated, so half of a build's processor was lost. Here the answer about a container that runs comes when it has ended.
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
