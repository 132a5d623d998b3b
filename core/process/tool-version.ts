// The oldest version of each host tool that Berth was tried with, for tools that say theirs in one stable line. README.md has the others, too.
import type { HostCommands, Logger, RunOptions } from '../contracts/services.ts'
import { packageOf } from './packages.ts'

const OLDEST_TRIED: Readonly<Record<string, string>> = {
  conntrack: '1.4.7',
  'docker-registry': '2.8.2',
  dnsmasq: '2.90',
  ip: '6.1.0',
  nft: '1.0.6',
  nginx: '1.22.1',
  'qemu-system-x86_64': '7.2.0',
  skopeo: '1.9.3',
  umoci: '0.4.7'
}

export interface ToolCheck extends RunOptions {
  readonly commands: HostCommands
  readonly log: Pick<Logger, 'warn'>
  /** what makes it tell its version */
  readonly option?: string
  /** which tool it is, where it goes by a name of its own */
  readonly tool?: string
}

/** Has the tool tell its version, and warns of one that is too old. @throws HostCommandMissing */
export async function checkTool (file: string, { commands, log, option = '--version', tool = file, ...options }: ToolCheck): Promise<void> {
  const { stdout } = await commands.run(file, [option], options)
  const problem = tooOld(tool, stdout)
  if (problem !== undefined) log.warn(problem)
}

/**
 * One line about a tool that is older than any that was tried; `undefined` when it is not, or its version cannot be told.
 * @param file a name or a path
 * @param said what it prints of its version
 */
export function tooOld (file: string, said: string): string | undefined {
  const name = file.slice(file.lastIndexOf('/') + 1)
  const oldest = Object.hasOwn(OLDEST_TRIED, name) ? OLDEST_TRIED[name] : undefined
  const version = /\d{1,6}\.\d{1,6}(?:\.\d{1,6})?/.exec(said)?.[0]
  if (oldest === undefined || version === undefined || isAtLeast(version, oldest)) return undefined
  return `${file} ${version} is older than ${oldest}, the oldest that was tried; install a later version of the package ${packageOf(name) ?? name}`
}

function isAtLeast (version: string, oldest: string): boolean {
  const [one, other] = [version, oldest].map((each) => each.split('.').map(Number))
  for (const place of [0, 1, 2]) {
    const difference = (one?.[place] ?? 0) - (other?.[place] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return true
}
