// Secrets do not get out with a printed configuration.
import t from 'tap'
import { Type } from 'typebox'
import { jsonSchema } from '../../../core/config/json-schema.ts'
import { maskSecrets, maskUrl } from '../../../core/config/mask.ts'

t.test('values marked secret are masked wherever they stand, empty ones are shown as empty', async (t) => {
  const login = Type.Object({ user: Type.String(), password: Type.String({ secret: true }) })
  const schema = Type.Object({
    plain: Type.String(),
    token: Type.String({ secret: true }),
    none: Type.String({ secret: true }),
    logins: Type.Array(login),
    byHost: Type.Record(Type.String(), login),
    either: Type.Union([Type.Null(), login]),
    whole: Type.Object({ a: Type.Integer() }, { secret: true })
  })
  const user = { user: 'u', password: 'p1' }
  const value = { plain: 'x', token: 't1', none: '', logins: [user], byHost: { h: user }, either: user, whole: { a: 1 } }
  const masked = { user: 'u', password: '***' }
  t.strictSame(maskSecrets(jsonSchema(schema), value), { plain: 'x', token: '***', none: '', logins: [masked], byHost: { h: masked }, either: masked, whole: '***' })
})

t.test('only the password of a database URL is masked', async (t) => {
  const table: [string, string][] = [
    ['mysql://berth:pa:ss@w@db:3306/berth', 'mysql://berth:***@db:3306/berth'],
    ['mysql://berth@db/berth?password=x&ssl=1', 'mysql://berth@db/berth?password=***&ssl=1'],
    ['mysql://db/berth', 'mysql://db/berth'],
    ['sqlite:/var/lib/berth/a:b@c.db', 'sqlite:/var/lib/berth/a:b@c.db']
  ]
  for (const [url, masked] of table) t.equal(maskUrl(url), masked)
})
