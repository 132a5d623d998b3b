// Warns when a host tool is older than the oldest version that Berth was tested with, for tools that print their version in one stable line. setup/README.md lists the others, too.
import { isOlder, versionIn } from '../compare-versions.ts'
import type { HostCommands, Logger, RunOptions } from '../contracts/services.ts'
import { packageOf, SHARED_PACKAGES, type HostPackage } from './packages.ts'

export interface ToolCheck extends RunOptions {
  readonly commands: HostCommands
  readonly log: Pick<Logger, 'warn'>
  /** packages of the plugin's manifest, besides the shared ones */
  readonly packages?: readonly HostPackage[]
  /** the name of the tool, when the file has another name */
  readonly tool?: string
}

/** Asks the tool for its version, and warns when it is too old. @throws HostCommandMissing */
export async function checkTool (file: string, { commands, log, packages = [], tool = file, ...options }: ToolCheck): Promise<void> {
  const { versionOption = '--version' } = packageOf(tool, [...packages, ...SHARED_PACKAGES]) ?? {}
  const { stdout, stderr } = await commands.run(file, [versionOption], options)
  // nginx says it on standard error.
  const problem = tooOld(tool, stdout === '' ? stderr : stdout, packages)
  if (problem !== undefined) log.warn(problem)
}

/**
 * A warning for a tool that is older than any tested version; `undefined` when it is not, or its version is unknown.
 * @param file a name or a path
 * @param said what it printed about its version
 * @param packages besides the shared ones
 */
export function tooOld (file: string, said: string, packages: readonly HostPackage[] = []): string | undefined {
  const { name, oldest } = packageOf(file, [...packages, ...SHARED_PACKAGES]) ?? {}
  const version = versionIn(said)
  if (oldest === undefined || version === undefined || !isOlder(version, oldest)) return undefined
  return `${file} ${version} is older than ${oldest}, the oldest that was tried; install a later version of the package ${name}`
}
