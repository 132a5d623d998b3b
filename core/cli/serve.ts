// `berth serve`: runs the server until a signal ends it.
import { parseArgs } from 'node:util'
import { createApp, type App } from '../app.ts'
import { notifySocket } from '../config/environment.ts'
import { resolveConfig } from '../config/resolve.ts'
import { builtInFolder } from '../plugins/discover.ts'
import type { Command } from './command.ts'
import { findConfig } from './find-config.ts'
import { notifySystemd } from './notify.ts'

export const serve: Command = {
  async run (args, { environment }) {
    const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' } } })
    const { source, origin } = await findConfig(values.config, environment)
    const app = await createApp(await resolveConfig(source, { environment, builtIns: builtInFolder }))
    app.log.info({ config: origin }, 'starting')
    exitOnFault(app)
    const stopped = stopOnSignal(app)
    const socket = notifySocket(environment)
    const started = app.start()
    // A signal before the end of the start makes the start reject; the exit code is then that of the stop.
    await Promise.race([started, stopped.signalled])
    if (!stopped.isSignalled()) await notifySystemd('ready', socket, app.log)
    await stopped.signalled
    await notifySystemd('stopping', socket, app.log)
    await app.stop()
    return 0
  }
}

interface Stopped { readonly signalled: Promise<void>, isSignalled (): boolean }

/** The first SIGTERM or SIGINT stops the server in order; the second ends the process at once. */
function stopOnSignal (app: App): Stopped {
  let isSignalled = false
  const signalled = new Promise<void>(resolve => {
    for (const [name, number] of [['SIGTERM', 15], ['SIGINT', 2]] as const) {
      process.on(name, () => {
        if (isSignalled) process.exit(128 + number)
        isSignalled = true
        app.log.info({ signal: name }, 'stopping; a second signal ends the process at once')
        resolve()
      })
    }
  })
  return { signalled, isSignalled: () => isSignalled }
}

/** After such a fault the state of the process is unknown, so it ends; the next start finishes or undoes what it was doing. */
function exitOnFault (app: App): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (fault: unknown) => {
      app.log.fatal({ err: fault }, event === 'uncaughtException' ? 'uncaught exception' : 'unhandled rejection')
      process.exit(1)
    })
  }
}
