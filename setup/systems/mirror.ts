// Where this host gets its packages from, read from apt's configuration: the only place that names a mirror.
import type { HostCommands } from '../../core/contracts/services.ts'

export interface Mirror {
  /** URL of Debian's main archive */
  readonly url: string
  /** apt's own settings for the connection, as lines of its configuration */
  readonly settings: readonly string[]
}

/** `undefined` when apt is missing, or knows no archive of Debian. */
export async function hostMirror (commands: HostCommands): Promise<Mirror | undefined> {
  const targets = await ask(commands, 'apt-get', ['indextargets', '--format', '$(LABEL) $(COMPONENT) $(REPO_URI)', 'Created-By: Packages'])
  const url = targets.map((line) => line.split(' ')).find(([label, component]) => label === 'Debian' && component === 'main')?.[2]
  if (url === undefined) return undefined
  const settings = (await ask(commands, 'apt-config', ['dump'])).filter((line) => /^Acquire::https?(?:::[^ ]+)? "[^"]+";$/.test(line))
  // Some archives refuse a path with two slashes.
  return { url: url.replace(/\/$/, ''), settings }
}

async function ask (commands: HostCommands, file: string, args: readonly string[]): Promise<readonly string[]> {
  try {
    return (await commands.run(file, args, { timeoutMs: 60_000 })).stdout.split('\n').filter((line) => line !== '')
  } catch {
    // Without apt nothing can be made here, whatever the reason.
    return []
  }
}
