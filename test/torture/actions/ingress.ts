// Names that lead to programs of instances come and go, and are asked, also while the instance sleeps.
import { INGRESS_PORT } from '../stage/stage.ts'
import { INGRESSES, PROGRAM_PORT, VMS, type Choose } from './action.ts'
import { reason } from '../world.ts'
import { request } from 'node:http'
import { once } from 'node:events'

const ASK_MS = 60_000

export const createIngress: Choose = (random) => {
  const [name, vm] = [random.pick(INGRESSES), random.pick(VMS)]
  return {
    text: `lead ${name} to ${vm}`,
    run: async (world) => (await world.call('POST', '/ingresses', { name, rules: [{ match: { hostname: `${name}.test` }, target: { instance: vm, port: PROGRAM_PORT } }] })).summary
  }
}

export const deleteIngress: Choose = (random) => {
  const name = random.pick(INGRESSES)
  return { text: `lead ${name} nowhere`, run: async (world) => (await world.call('DELETE', `/ingresses/${name}`)).summary }
}

export const askIngress: Choose = (random) => {
  const name = random.pick(INGRESSES)
  return {
    text: `ask ${name}`,
    run: async () => {
      try {
        const asking = request({ host: '127.0.0.1', port: INGRESS_PORT, headers: { host: `${name}.test` }, signal: AbortSignal.timeout(ASK_MS) }).end()
        const [answer] = await once(asking, 'response')
        answer.resume()
        return String(answer.statusCode)
      } catch (error) {
        return reason(error)
      }
    }
  }
}
