// `berth completion`: what makes a shell ask this command for suggestions.
import { SCRIPTS } from '../completion/scripts.ts'
import { wrongUsage } from '../failure.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const shell = input.argument(0)
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (script === undefined) throw wrongUsage(`there is no completion for ${shell}`, `for ${Object.keys(SCRIPTS).join(', ')}`)
  session.line(script)
  return await Promise.resolve(0)
}
