// Checks a package that Berth runs the programs of: whether it is there, and not older than what was tried.
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { isOlder, versionIn } from '../../compare-versions.ts'
import type { Look } from './check.ts'
import { findTool, runTool, type ToolPath } from './tools.ts'

export interface CheckedPackage {
  /** its name in Debian */
  readonly name: string
  /** what shows that it is there: a command, or the path of a file */
  readonly proof: string
  /** what there is none of without it */
  readonly use: string
  /** the argument that makes the command print its version; default: --version */
  readonly versionOption?: string
  /** the oldest version that was tried, if it prints its own in one stable line */
  readonly oldest?: string
  /** whoever wants its use installs it; a host without it lacks nothing */
  readonly isOptional?: boolean
}

/** Its command; of a package without one, its name. */
export function subjectOf ({ name, proof }: CheckedPackage): string {
  return proof.startsWith('/') ? name : proof
}

export async function installed ({ name, proof, use, versionOption = '--version', oldest, isOptional = false }: CheckedPackage, place: ToolPath): Promise<Look> {
  const file = proof.startsWith('/') ? await access(proof, constants.R_OK).then(() => proof, () => undefined) : await findTool(proof, place)
  if (file === undefined) return isOptional ? { verdict: 'ok', found: `not installed: no ${use}` } : { verdict: 'warning', found: `missing: no ${use}`, remedy: `apt-get install ${name}` }
  if (file === proof) return { verdict: 'ok', found: file }
  const look = await versionOf(file, versionOption)
  const version = versionIn(look.found)
  if (look.verdict !== 'ok' || oldest === undefined || version === undefined || !isOlder(version, oldest)) return look
  return { verdict: 'warning', found: look.found, remedy: `install a later version of the package ${name}: the oldest that was tried is ${oldest}` }
}

/** One that hangs when it is asked for its version would hang in the server, too. */
export async function versionOf (file: string, argument: string): Promise<Look> {
  const { said, hung } = await runTool(file, [argument])
  return hung ? { verdict: 'warning', found: said, remedy: `see why "${file} ${argument}" hangs` } : { verdict: 'ok', found: said }
}
