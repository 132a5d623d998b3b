// What the schema of the settings cannot say.
import type { PortsConfig } from './manifest.ts'

/** @throws Error that names the key */
export function requireSettings ({ firstPort, lastPort, firstChosen, lastChosen }: PortsConfig): void {
  if (firstPort > lastPort) throw new Error('plugins.ports.config.firstPort: must not be above lastPort')
  if (firstChosen > lastChosen) throw new Error('plugins.ports.config.firstChosen: must not be above lastChosen')
}
