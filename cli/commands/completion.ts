// `berth completion`: what makes a shell ask this command for suggestions.
import { script } from '@bomb.sh/tab'
import { wrongUsage } from '../failure.ts'
import type { Run } from '../spec.ts'

const SHELLS = ['bash', 'zsh', 'fish']

export const run: Run = async (_session, input) => {
  const shell = input.argument(0)
  if (!SHELLS.includes(shell)) throw wrongUsage(`there is no completion for ${shell}`, `for ${SHELLS.join(', ')}`)
  script(shell, 'berth', 'berth')
  return await Promise.resolve(0)
}
