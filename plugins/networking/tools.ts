// The host's network tools, inside the namespace and outside: many changes in one command each.
import { exitedWith } from '../../core/process/errors.ts'
import type { HostCommands } from '../../core/contracts/services.ts'

const TIMEOUT_MS = 20_000

/** One network namespace as the tools see it. */
export interface NetworkTools {
  /** Runs lines of `ip`, in order; the first failure stops it. */
  ip (lines: readonly string[]): Promise<void>
  /** The same, but continues after a failed line. */
  ipEach (lines: readonly string[]): Promise<void>
  /** What `ip -json` prints. */
  query (args: readonly string[]): Promise<unknown>
  bridge (lines: readonly string[]): Promise<void>
  bridgeEach (lines: readonly string[]): Promise<void>
  tc (lines: readonly string[]): Promise<void>
  /** One transaction. */
  nft (text: string): Promise<void>
  sysctl (values: Readonly<Record<string, string | number>>, missing?: 'ignore'): Promise<void>
  /** Any other command; its output. */
  run (file: string, args: readonly string[]): Promise<string>
}

/** @param namespace name and path of a namespace; `undefined`: the server's own */
export function createTools (commands: HostCommands, namespace?: { readonly name: string, readonly path: string }): NetworkTools {
  const inside = namespace === undefined ? [] : ['-n', namespace.name]
  const run = async (file: string, args: readonly string[], input?: string): Promise<string> => {
    const { stdout } = await commands.run(file, args, { timeoutMs: TIMEOUT_MS, ...input === undefined ? {} : { input } })
    return stdout
  }
  const enter = async (file: string, args: readonly string[], input?: string): Promise<string> =>
    namespace === undefined ? await run(file, args, input) : await run('nsenter', [`--net=${namespace.path}`, file, ...args], input)
  const batch = async (file: string, lines: readonly string[]): Promise<void> => {
    if (lines.length > 0) await run(file, [...inside, '-batch', '-'], `${lines.join('\n')}\n`)
  }
  const batchEach = async (file: string, lines: readonly string[]): Promise<void> => {
    if (lines.length === 0) return
    try {
      await run(file, [...inside, '-force', '-batch', '-'], `${lines.join('\n')}\n`)
    } catch (error) {
      // 1 for a line that the tool refuses, 2 for one that the kernel does.
      if (!exitedWith(error, 1) && !exitedWith(error, 2)) throw error
    }
  }
  return {
    async ip (lines) { await batch('ip', lines) },
    async ipEach (lines) { await batchEach('ip', lines) },
    async query (args) {
      const text = await run('ip', [...inside, '-json', ...args])
      return text.trim() === '' ? [] : JSON.parse(text) as unknown
    },
    async bridge (lines) { await batch('bridge', lines) },
    async bridgeEach (lines) { await batchEach('bridge', lines) },
    async tc (lines) { await batch('tc', lines) },
    async nft (text) { await enter('nft', ['-f', '-'], text) },
    async sysctl (values, missing) {
      await enter('sysctl', ['--quiet', ...missing === undefined ? [] : ['--ignore'], '--write', ...Object.entries(values).map(([key, value]) => `${key}=${value}`)])
    },
    async run (file, args) { return await enter(file, args) }
  }
}
