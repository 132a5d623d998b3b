// Makes the parts of the plugin: the service `guest`, and the systems behind it, which the plugin starts and stops.
import { join } from 'node:path'
import { durationMs } from '../../core/config/quantities.ts'
import type { Logger } from '../../core/contracts/services.ts'
import { packageRoot } from '../../core/package-root.ts'
import type { GuestService } from './contract.ts'
import { StreamLink } from './link/link.ts'
import { messageSizes } from './link/message-sizes.ts'
import type { GuestConfig, Deps } from './manifest.ts'
import { createSystems, type Systems } from './system/systems.ts'
import { trustEnvironment } from './trust-environment.ts'

export function systemsFor ({ log, commands, server }: Deps, config: GuestConfig): Systems {
  return createSystems({
    log,
    commands,
    config,
    folder: join(server.dataDir, 'system'),
    // where `npm run build` puts it
    initPath: join(packageRoot, 'dist/guest/berth-init')
  })
}

export function createGuestService (systems: Systems, log: Logger, config: GuestConfig): GuestService {
  return {
    system: () => systems.system(),
    kernelHeaders: () => systems.headers.disk(),
    kernelHeadersDisk: (name) => systems.headers.path(name),
    trustEnvironment,
    messageSizes,
    link: (stream) => new StreamLink(stream, { log, answerTimeoutMs: durationMs(config.answerTimeout) })
  }
}
