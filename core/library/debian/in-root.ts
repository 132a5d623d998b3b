// Runs a program of a root folder with that folder as its `/`: by `chroot` when this process is root, else in a user namespace, where the host allows it.
import type { HostCommands, RunOptions, RunResult } from '../../contracts/services.ts'

export async function inRoot (commands: HostCommands, root: string, command: readonly string[], options: RunOptions): Promise<RunResult> {
  const enter = ['chroot', root, '/usr/bin/env', '-i', 'PATH=/usr/sbin:/usr/bin', 'LC_ALL=C', ...command]
  const [file = '', ...args] = process.getuid?.() === 0 ? enter : ['unshare', '--user', '--map-root-user', ...enter]
  return await commands.run(file, args, options)
}
