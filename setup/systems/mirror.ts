// Where this host gets its packages from, as apt itself is set up: the only place that names a mirror.
import type { HostCommands } from '../../core/contracts/services.ts'

export interface Mirror {
  /** of Debian's main archive */
  readonly url: string
  /** apt's own settings of how to get there, as lines of its configuration */
  readonly settings: readonly string[]
}

/** `undefined` where apt is not there, or knows no archive of Debian. */
export async function hostMirror (commands: HostCommands): Promise<Mirror | undefined> {
  const targets = await ask(commands, 'apt-get', ['indextargets', '--format', '$(LABEL) $(COMPONENT) $(REPO_URI)', 'Created-By: Packages'])
  const url = targets.map((line) => line.split(' ')).find(([label, component]) => label === 'Debian' && component === 'main')?.[2]
  if (url === undefined) return undefined
  const settings = (await ask(commands, 'apt-config', ['dump'])).filter((line) => /^Acquire::https?(?:::[^ ]+)? "[^"]+";$/.test(line))
  // Not every archive takes a path with two slashes.
  return { url: url.replace(/\/$/, ''), settings }
}

async function ask (commands: HostCommands, file: string, args: readonly string[]): Promise<readonly string[]> {
  try {
    return (await commands.run(file, args, { timeoutMs: 60_000 })).stdout.split('\n').filter((line) => line !== '')
  } catch {
    // No apt: nothing can be made here, whatever its reason.
    return []
  }
}
