// The errors of the webhooks plugin. Codes are API: they never change.
import { defineError } from '../../core/errors/define.ts'

export const AddressNotAllowed = defineError('address_refused', 'invalid', (message: string) => `url: ${message}`)

export const TooManyWebhooks = defineError('too_many_webhooks', 'conflict', (most: number) => `there are ${most} webhooks, and no more are allowed (plugins.webhooks.config.maxWebhooks)`)
