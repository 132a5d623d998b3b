// Runs compiled test programs as processes of their own, for what only happens between processes.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Runs a compiled module to its end; what it prints to standard error is in the failure. */
export async function runModule (module: URL, args: readonly string[]): Promise<void> {
  const child = fork(module, [...args], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const output: string[] = []
  child.stderr?.setEncoding('utf8').on('data', (text: string) => output.push(text))
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${fileURLToPath(module)} ended with ${String(code)}:\n${output.join('')}`)
}
