// The real command in a process of its own.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'

export interface Ended { readonly code: number | null, readonly out: string, readonly error: string }

/** What the command is run by: `node FILE`. */
export const mainFile = join(packageRoot, 'dist/cli/main.js')

/** Runs it to its end, behind the command `through` if there is one. Its environment is that of the test, without a server or contexts of whoever runs the tests. */
export async function berth (args: readonly string[], { env = {}, input = '', signalAfter, signalWhen, through = [] }: { readonly env?: Readonly<Record<string, string>>, readonly input?: string | Buffer, readonly signalAfter?: (out: string) => boolean, readonly signalWhen?: Promise<unknown>, readonly through?: readonly string[] } = {}): Promise<Ended> {
  const [program = '', ...words] = [...through, process.execPath, mainFile, ...args]
  const child = spawn(program, words, { env: { ...clientEnvironment(), ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  let out = ''
  let error = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
    if (signalAfter?.(out) === true) child.kill('SIGINT')
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { error += text })
  void signalWhen?.then(() => child.kill('SIGINT'))
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { code, out, error }
}

export function clientEnvironment (): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('BERTH_') && name !== 'NODE_V8_COVERAGE')
  return { ...Object.fromEntries(kept), BERTH_CONTEXTS: '/nonexistent/contexts.json' }
}
