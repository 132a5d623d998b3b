// The words after `npm run install-service --` and `npm run uninstall-service --`.
import { isAbsolute, resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface ServiceOptions {
  readonly verb: 'install' | 'uninstall'
  /** folder that stands for `/`; absent: this system, and its systemd is used, too */
  readonly root: string | undefined
  /** Node on the target system */
  readonly node: string
  readonly purge: boolean
}

export const usage = `npm run install-service [-- --root DIR] [--node FILE]
  installs Berth as services of systemd and starts them; over an earlier version it is an upgrade, and VMs go on
npm run uninstall-service [-- --root DIR] [--purge]
  stops the services and removes what was installed; data and configuration stay
  --root DIR   into or from a folder that stands for /, without touching this system
  --node FILE  the Node program of the services, when it is not the one that runs this
  --purge      removes data, configuration and the proxy's user as well`

/** Throws a sentence for people on words that it does not know. */
export function parseOptions (args: readonly string[]): ServiceOptions {
  const { values, positionals } = parseArgs({
    // npm passes a second `--` on as it is.
    args: args.filter(arg => arg !== '--'),
    options: { root: { type: 'string' }, node: { type: 'string' }, purge: { type: 'boolean', default: false } },
    allowPositionals: true
  })
  const [verb, ...rest] = positionals
  if ((verb !== 'install' && verb !== 'uninstall') || rest.length > 0) throw new Error(usage)
  if (verb === 'install' && values.purge) throw new Error('--purge belongs to uninstall-service')
  if (verb === 'uninstall' && values.node !== undefined) throw new Error('--node belongs to install-service')
  const node = values.node ?? process.execPath
  if (!isAbsolute(node)) throw new Error('--node needs an absolute path')
  const root = values.root === undefined ? undefined : resolve(values.root)
  return { verb, root: root === '/' ? undefined : root, node, purge: values.purge }
}
