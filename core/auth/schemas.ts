// The shapes of requests and answers about keys.
import { Type } from 'typebox'
import { listQuery, NameQuery } from '../http/list.ts'
import { nullable, oneOf, Timestamp } from '../http/schemas.ts'
import { KEY_STATUSES } from './status.ts'

const closed = { additionalProperties: false } as const

const Scopes = Type.Array(Type.String({ maxLength: 64 }), { description: 'What the key may do: `*`, or scopes such as `instance:write`', examples: [['instance:read', 'image:read']] })
const Repositories = Type.Array(Type.String({ maxLength: 512 }), {
  maxItems: 100,
  description: 'Where the key may write images: `host/path` for one repository, `host/path/*` for those below it; `localhost` is the host of the built-in registry',
  examples: [['localhost/team/*', 'registry.example.com/team/app']]
})

export const KeyCreate = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 191, description: 'For people; need not be unique' }),
  scopes: Type.Array(Type.String({ maxLength: 64 }), { minItems: 1, maxItems: 100, description: 'What the key may do: `*`, or scopes such as `instance:write`. No more than the key of this request has', examples: [['instance:read', 'image:read']] }),
  repositories: Type.Optional(Repositories),
  expires_at: Type.Optional(Type.String({ format: 'date-time', description: 'When it ends, by the server\'s clock; absent: when the key of this request does' })),
  expires_in: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Instead of `expires_at`: after how long, such as `30d` or `12h`' }))
}, { ...closed, $id: 'CreateKey' })

const fields = {
  id: Type.String(),
  name: Type.String(),
  scopes: Scopes,
  repositories: nullable(Repositories),
  status: oneOf(KEY_STATUSES),
  created_by: nullable(Type.String({ description: 'Id of the key that it was made with; null when it was made on the server\'s own command line' })),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
  revoked_at: nullable(Timestamp),
  last_used_at: nullable(Type.String({ format: 'date-time', description: 'Written now and then, so up to 15 s old' }))
}

export const KeyView = Type.Object(fields, { ...closed, $id: 'Key' })

export const CreatedKey = Type.Object({
  ...fields,
  key: Type.String({ description: 'The key itself. Only its hash is stored: it is shown in this answer and never again' })
}, { ...closed, $id: 'CreatedKey' })

export const KeyList = Type.Array(KeyView)

export const KeyListQuery = Type.Object({
  ...listQuery(['created_at', 'name'], 'created_at'),
  ...NameQuery,
  status: Type.Optional(oneOf(KEY_STATUSES, { description: 'Only keys with this status' }))
}, closed)

export const KeyPath = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64, description: 'The id of a key, or the beginning of one' }) }, closed)

export const Whoami = Type.Object({
  id: Type.String({ description: '`process` for the key of `BERTH_API_KEY`' }),
  name: Type.String(),
  scopes: Scopes,
  repositories: nullable(Repositories),
  expires_at: nullable(Timestamp)
}, { ...closed, $id: 'Whoami' })
