// Debian packages that one benchmark alone needs and installs.
import type { HostCommands } from '../core/contracts/services.ts'
import { HostCommandFailed } from '../core/process/run.ts'

/** Installs the packages that are missing. */
export async function installPackages (commands: HostCommands, packages: readonly string[]): Promise<void> {
  const missing: string[] = []
  for (const name of packages) if (!await isInstalled(commands, name)) missing.push(name)
  if (missing.length === 0) return
  if (process.getuid?.() !== 0) throw new Error(`only root can install what is missing: apt-get install --no-install-recommends ${missing.join(' ')}`)
  process.stderr.write(`installing ${missing.join(', ')}\n`)
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  const options = ['-q', '-y', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3']
  await commands.run('apt-get', [...options, 'update'], { env })
  await commands.run('apt-get', [...options, 'install', '--no-install-recommends', ...missing], { env })
}

async function isInstalled (commands: HostCommands, name: string): Promise<boolean> {
  try {
    const { stdout } = await commands.run('dpkg-query', ['--show', '--showformat=${Status}', name])
    return stdout === 'install ok installed'
  } catch (error) {
    if (error instanceof HostCommandFailed) return false
    throw error
  }
}
