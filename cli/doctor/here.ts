// The doctor's checks of the host that the command runs on.
import { request } from 'node:http'
import { check, type Finding } from '../../core/library/host-checks/check.ts'
import { hostFindings } from '../../core/library/host-checks/host.ts'
import { ports } from '../../core/library/host-checks/ports.ts'
import { contextsFile } from '../connection/contexts.ts'
import { LOCAL_KEY_FILE } from '../connection/target.ts'

const DATA_FOLDER = '/var/lib/berth'
const CONFIGURATION = '/etc/berth/berth.yaml'
const ANSWER_MS = 2000

export async function findingsHere (environment: NodeJS.ProcessEnv): Promise<Finding[]> {
  const place = { path: environment['PATH'] ?? '', dataFolder: DATA_FOLDER, keyFiles: [LOCAL_KEY_FILE, CONFIGURATION, contextsFile(environment)] }
  return await hostFindings(place, [check('ports', async () => await ports(isBerth))])
}

/** Whether a Berth server answers at a port of this host. */
async function isBerth (port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path: '/health', timeout: ANSWER_MS }, (answer) => {
      answer.resume()
      resolve(answer.headers['x-request-id'] !== undefined)
    })
    asked.once('timeout', () => asked.destroy())
    asked.once('error', () => resolve(false))
    asked.end()
  })
}
