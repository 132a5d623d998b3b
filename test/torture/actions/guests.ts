// What happens in a guest at the request of a client: a command, a file that must stay, a request through the egress proxy.
import { randomBytes } from 'node:crypto'
import { API, OTHER } from '../../integration/egress-enforcement/far/contract.ts'
import { VMS, type Choose } from './action.ts'

export const command: Choose = (random) => {
  const name = random.pick(VMS)
  const bytes = 1 + random.below(200_000)
  return {
    text: `run a command in ${name} that writes ${bytes} bytes`,
    run: async (world) => await world.shell(name, `head -c ${bytes} /dev/urandom > /root/file && sync && wc -c < /root/file`)
  }
}

/** Some of it goes to a host that no rule names, some in plain: what a secret must not go into. */
export const request: Choose = (random) => {
  const name = random.pick(VMS)
  const host = random.pick([API.host, API.host, OTHER.host])
  const scheme = random.pick(['https', 'https', 'http'])
  return {
    text: `request ${scheme}://${host} from ${name}`,
    run: async (world) => await world.shell(name, `curl -sS -k -m 15 -H 'Authorization: Bearer mock-API_KEY' -w ' %{http_code}' '${scheme}://${host}/${name}-${randomBytes(6).toString('hex')}' 2>&1`)
  }
}

/** The secret stays the same text, so that whoever looks for it looks for one; what is exercised is the exchange. */
export const exchange: Choose = (random) => {
  const name = random.pick(VMS)
  return { text: `give ${name} its secret again`, run: async (world) => (await world.call('PATCH', `/instances/${name}`, { env: { REAL: world.stage.secret } })).summary }
}
