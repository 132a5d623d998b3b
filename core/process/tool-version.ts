// Whether a host tool is as old as the oldest that Berth was tried with, for tools that say theirs in one stable line. setup/README.md has the others, too.
import type { HostCommands, Logger, RunOptions } from '../contracts/services.ts'
import { packageOf, SHARED_PACKAGES, type HostPackage } from './packages.ts'

export interface ToolCheck extends RunOptions {
  readonly commands: HostCommands
  readonly log: Pick<Logger, 'warn'>
  /** of the plugin's manifest, beside those that all share */
  readonly packages?: readonly HostPackage[]
  /** what makes it tell its version */
  readonly option?: string
  /** which tool it is, where it goes by a name of its own */
  readonly tool?: string
}

/** Has the tool tell its version, and warns of one that is too old. @throws HostCommandMissing */
export async function checkTool (file: string, { commands, log, packages, option = '--version', tool = file, ...options }: ToolCheck): Promise<void> {
  const { stdout } = await commands.run(file, [option], options)
  const problem = tooOld(tool, stdout, packages)
  if (problem !== undefined) log.warn(problem)
}

/**
 * One line about a tool that is older than any that was tried; `undefined` when it is not, or its version cannot be told.
 * @param file a name or a path
 * @param said what it prints of its version
 * @param packages beside those that all share
 */
export function tooOld (file: string, said: string, packages: readonly HostPackage[] = []): string | undefined {
  const { name, oldest } = packageOf(file, [...packages, ...SHARED_PACKAGES]) ?? {}
  const version = /\d{1,6}\.\d{1,6}(?:\.\d{1,6})?/.exec(said)?.[0]
  if (oldest === undefined || version === undefined || isAtLeast(version, oldest)) return undefined
  return `${file} ${version} is older than ${oldest}, the oldest that was tried; install a later version of the package ${name}`
}

function isAtLeast (version: string, oldest: string): boolean {
  const [one, other] = [version, oldest].map((each) => each.split('.').map(Number))
  for (const place of [0, 1, 2]) {
    const difference = (one?.[place] ?? 0) - (other?.[place] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return true
}
