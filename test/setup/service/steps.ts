// Lets an installation of this process die before a step, as kill -9 does: nothing that it waits for comes any more, so that neither the step nor any undo is done.
import { constants, promises } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const CHANGES = ['chmod', 'copyFile', 'mkdir', 'open', 'rename', 'rm', 'rmdir', 'symlink', 'writeFile'] as const

/** @param before called before each change of files below `root`, and waited for; gives the end of that */
export function watchChanges (root: string, before: (step: string) => Promise<void>): () => void {
  const originals = CHANGES.map(name => [name, promises[name]] as const)
  for (const [name, original] of originals) {
    Reflect.set(promises, name, async (...args: unknown[]) => {
      const paths = args.map(String).filter(text => text.startsWith(root))
      const isReading = name === 'open' && typeof args[1] !== 'string' && (Number(args[1]) & (constants.O_WRONLY | constants.O_RDWR)) === 0
      if (paths.length > 0 && !isReading) await before(`${name} ${paths.map(path => path.slice(root.length)).join(' to ')}`)
      return await Reflect.apply(original, promises, args) as unknown
    })
  }
  syncBuiltinESMExports()
  return () => {
    for (const [name, original] of originals) Reflect.set(promises, name, original)
    syncBuiltinESMExports()
  }
}

/** @param number of the step before which it dies; `Infinity` counts them only. @returns the steps, without the one that was not done; their number is less than `number` when it came to its end first */
export async function dieBefore (root: string, number: number, work: (before: (step: string) => Promise<void>) => Promise<unknown>): Promise<{ readonly died: boolean, readonly steps: readonly string[] }> {
  const steps: string[] = []
  let die = (): void => {}
  const death = new Promise<boolean>(resolve => { die = () => { resolve(true) } })
  const before = async (step: string): Promise<void> => {
    if (steps.push(step) < number) return
    die()
    await new Promise<never>(() => {})
  }
  const stop = watchChanges(root, before)
  try {
    return { died: await Promise.race([death, work(before).then(() => false)]), steps }
  } finally {
    stop()
  }
}
