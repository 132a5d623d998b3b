// Makes the plugin's two services: `guest` for everybody, and the systems behind it for the plugin's own start and stop.
import { join } from 'node:path'
import { durationMs } from '../../core/config/quantities.ts'
import { packageRoot } from '../../core/package-root.ts'
import type { GuestService } from './contract.ts'
import { StreamLink } from './link/link.ts'
import type { GuestConfig, Deps } from './manifest.ts'
import { createSystems, type Systems } from './system/systems.ts'
import { trustEnvironment } from './trust-environment.ts'

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    /** this plugin's own; others use `guest` */
    readonly guestSystems: Systems
  }
}

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

export function createGuestService (deps: Pick<Deps, 'log' | 'guestSystems'>, config: GuestConfig): GuestService {
  const { log, guestSystems } = deps
  return {
    system: () => guestSystems.system(),
    kernelHeaders: () => guestSystems.headers.disk(),
    kernelHeadersDisk: (name) => guestSystems.headers.path(name),
    trustEnvironment,
    link: (stream) => new StreamLink(stream, { log, answerTimeoutMs: durationMs(config.answerTimeout) })
  }
}
