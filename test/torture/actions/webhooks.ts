// Webhooks come and go, are turned off and on, and their receiver refuses now and then.
import type { Choose } from './action.ts'

export const createWebhook: Choose = (random) => {
  const path = `/hook-${random.below(1_000_000_000)}`
  const filter = random.once(2) ? {} : { filter: { resources: [random.pick(['instance', 'volume', 'image'])] } }
  return { text: `webhook to ${path} ${JSON.stringify(filter)}`, run: async (world) => (await world.call('POST', '/webhooks', { url: `${world.stage.receiver.url}${path}`, ...filter })).summary }
}

export const changeWebhook: Choose = (random) => {
  const [place, enabled] = [random.below(100), random.once(2)]
  return {
    text: `turn webhook ${place} ${enabled ? 'on' : 'off'}`,
    run: async (world) => {
      const hooks = (await world.call('GET', '/webhooks')).items()
      const hook = hooks[place % hooks.length]
      return hook === undefined ? 'none' : (await world.call('PATCH', `/webhooks/${String(hook['id'])}`, { enabled })).summary
    }
  }
}

export const deleteWebhook: Choose = (random) => {
  const place = random.below(100)
  return {
    text: `delete webhook ${place}`,
    run: async (world) => {
      const hooks = (await world.call('GET', '/webhooks')).items()
      const hook = hooks[place % hooks.length]
      return hook === undefined ? 'none' : (await world.call('DELETE', `/webhooks/${String(hook['id'])}`)).summary
    }
  }
}
