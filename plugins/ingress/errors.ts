// Errors that this plugin alone answers with.
import { defineError } from '../../core/errors/define.ts'

export const IngressExists = defineError('already_exists', 'conflict', (name: string) => `name: an ingress named ${name} exists already`)
export const HostnameInUse = defineError('hostname_in_use', 'conflict', (place: string, host: string, port: number, path: string, owner: string) =>
  `${place}: ${host}${path === '/' ? '' : path} on port ${port} belongs to ${owner}`)
export const TargetNotFound = defineError('instance_not_found', 'invalid', (field: string, ref: string) => `${field}: there is no instance ${ref}`)
export const TooManyIngresses = defineError('insufficient_resources', 'conflict', (most: number) => `this server keeps at most ${most} ingresses`)
