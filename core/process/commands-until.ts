// Host commands that end with a signal, for work that runs them in many places.
import type { HostCommands } from '../contracts/services.ts'
import { withSignals } from '../jobs/deadline.ts'

/** The same commands. Each ends when the signal aborts, with its reason, as it does with one of its own. */
export function commandsUntil (commands: HostCommands, signal: AbortSignal): HostCommands {
  return {
    run: async (file, args, { signal: own, ...options } = {}) => await withSignals(own === undefined ? [signal] : [signal, own], async (either) => await commands.run(file, args, { ...options, signal: either }))
  }
}
