// What the steps of a build are given so that they trust the egress authority: files that appear in their /dev, and variables that name them. Nothing of it gets into the image.
import { basename } from 'node:path'
import { MEMORY } from './guest-paths.ts'

export interface StepTrust {
  /** `path-in-guest:path-in-step` */
  readonly volumes: readonly string[]
  /** in the guest: starts a step's container in the runtime's place */
  readonly runtime: { readonly path: string, readonly script: string }
}

const PATH = `${MEMORY}/berth-runtime`
const RUNTIME = 'crun'
/** What sed and JSON take as it is. */
const PLAIN = /^[A-Za-z0-9_./-]+$/

/**
 * buildah has no way to give a step variables that are not the image's. So they are put into the container's description right before it is created: first, so that an
 * image's own ENV goes before them. In the arguments before it the same text would have its quotes escaped.
 * @param variables those by which programs of the guest itself find the authority, whose values are paths
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
