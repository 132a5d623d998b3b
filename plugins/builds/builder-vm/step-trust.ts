// Lets the steps of a build trust the egress authority: by files in their /dev, and variables that name them. None of this gets into the image.
import { basename } from 'node:path'

export interface StepTrust {
  /** `path-in-guest:path-in-step` */
  readonly volumes: readonly string[]
  /** shell commands for ./step-runtime.ts */
  readonly beforeCreate: string
}

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
  return {
    volumes: [...new Set(entries.map(([, path]) => path))].map((path) => `${path}:${inStep(path)}`),
    beforeCreate: `sed -i '0,/"env":\\[/s##"env":[${added}#' "$bundle/config.json"`
  }
}
