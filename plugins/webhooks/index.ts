// The plugin "webhooks": posts events to receivers.
import { readFile } from 'node:fs/promises'
import { durationMs } from '../../core/config/quantities.ts'
import { createResolveHost } from '../../core/library/addresses.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { createSender } from './delivery/sender.ts'
import { manifest, type WebhooksConfig, type Deps } from './manifest.ts'
import { createWebhooksMetrics } from './metrics.ts'
import { WebhookRepository } from './repository.ts'
import { webhookRoutes } from './routes.ts'
import { Webhooks } from './service.ts'

function compose (deps: Deps, config: WebhooksConfig): Webhooks {
  const { database, apiKeys, secrets, journal, eventFeed: feed, server: { hostId, version } } = deps
  const repository = new WebhookRepository(database, hostId, journal)
  const resolve = createResolveHost({ allowPrivate: config.allowPrivate, trusted: [], setting: 'plugins.webhooks.config.allowPrivate' })
  const timeoutMs = durationMs(config.timeout)
  return new Webhooks({
    log: deps.log.child({ plugin: manifest.id }),
    repository,
    feed,
    apiKeys,
    secrets,
    resolve,
    metrics: createWebhooksMetrics(deps.metrics, async () => await repository.counts()),
    backoff: { firstMs: durationMs(config.retryFrom), mostMs: durationMs(config.retryAtMost), totalMs: durationMs(config.retryFor) },
    maxWebhooks: config.maxWebhooks,
    senderTo: (url, roots) => createSender(url, { resolve, roots, timeoutMs, userAgent: `berth/${version}` })
  })
}

export const plugin = definePlugin({
  manifest,
  create (deps, config) {
    const webhooks = compose(deps, config)
    return {
      start: async () => { await webhooks.open(await readRoots(config)) },
      routes: webhookRoutes(webhooks),
      stop: async () => { await webhooks.close() }
    }
  }
})

async function readRoots ({ roots }: WebhooksConfig): Promise<string[]> {
  return await Promise.all(roots.map(async (path, index) => {
    const field = `plugins.webhooks.config.roots.${index}`
    const text = await readFile(path, 'utf8').catch((error: unknown) => { throw new Error(`${field}: ${path} cannot be read`, { cause: error }) })
    if (!text.includes('-----BEGIN CERTIFICATE-----')) throw new Error(`${field}: ${path} holds no certificate in PEM`)
    return text
  }))
}
