// Lets the steps of a build trust the egress authority: by files in their /dev, and variables that name them. None of this gets into the image.
import { basename } from 'node:path'
import { MEMORY } from './guest-paths.ts'

export interface StepTrust {
  /** `path-in-guest:path-in-step` */
  readonly volumes: readonly string[]
  /** in the guest: a script that runs instead of the runtime to start a step's container */
  readonly runtime: { readonly path: string, readonly script: string }
}

const PATH = `${MEMORY}/berth-runtime`
const RUNTIME = 'crun'
/** Text that sed and JSON need not escape. */
const PLAIN = /^[A-Za-z0-9_./-]+$/

/**
 * buildah has no option to give a step variables that do not go into the image. So they are inserted into the container's description right before it is created: first, so that an
 * image's own ENV takes precedence. In the arguments before it the same text would have its quotes escaped.
 * @param variables the variables by which programs of the guest itself find the authority; their values are paths
 */
export function stepTrust (variables: Readonly<Record<string, string>>): StepTrust {
  const inStep = (path: string): string => `/dev/${basename(path)}`
  const entries = Object.entries(variables).filter(([name, path]) => PLAIN.test(name) && PLAIN.test(path))
  const added = entries.map(([name, path]) => `"${name}=${inStep(path)}",`).join('')
  const script = [
    '#!/bin/sh',
    'for word in "$@"; do',
    '  case "$before" in --bundle|-b) bundle=$word ;; esac',
    '  [ "$word" = create ] && creates=1',
    '  before=$word',
    'done',
    `if [ -n "$creates" ] && [ -n "$bundle" ]; then sed -i '0,/"env":\\[/s##"env":[${added}#' "$bundle/config.json" || exit 1; fi`,
    `exec ${RUNTIME} "$@"`,
    ''
  ].join('\n')
  return { volumes: [...new Set(entries.map(([, path]) => path))].map((path) => `${path}:${inStep(path)}`), runtime: { path: PATH, script } }
}
