// Runs a test in a network namespace of its own, so that a server in it has a "host" that belongs to the test, and this machine's network stays as it is.
// The namespace has no name: it is gone with the last process in it.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { fetchPackages } from '../../plugins/guest/system/headers-files.ts'
import { knownPackage } from '../../plugins/guest/system/known-package.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'

/**
 * Runs a compiled test as a program in a namespace of its own and ends as it ends. Without the privileges for that it runs here, and must skip itself.
 * @param fetch gets from the network what the test needs: there it has none
 */
export async function runIsolated (file: URL, fetch: () => Promise<unknown> = async () => undefined): Promise<void> {
  const isAble = missingPrivileges() === undefined
  if (isAble) {
    await fetchKernel()
    await fetch()
  }
  const command = [process.execPath, fileURLToPath(file), ...process.argv.slice(2)]
  const [program = '', ...args] = isAble ? ['setpriv', '--pdeathsig', 'KILL', 'unshare', '--net', ...command] : command
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => child.kill(signal))
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

/** The packages that every server looks for in this cache first: the guests' kernel, and what instances have of it besides. */
export async function fetchKernel (): Promise<void> {
  const commands = createHostCommands()
  const signal = AbortSignal.timeout(300_000)
  const cache = join(packageRoot, '.cache/packages')
  const { name, version } = await knownPackage(commands, 'linux-image-cloud-amd64', cache, signal)
  await fetchPackages(commands, `${name}=${version}`, cache, signal)
}
