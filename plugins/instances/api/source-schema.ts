// What an instance was made of, in its answer.
import { Type } from 'typebox'
import { oneOf } from '../../../core/http/schemas.ts'

export const SourceView = Type.Object({
  kind: oneOf(['image', 'template', 'instance', 'snapshot'], { description: 'image: its VM booted' }),
  id: Type.String({ description: 'Of an image the digest' }),
  name: Type.Optional(Type.String({ description: 'Its name at that time' }))
}, { additionalProperties: false, description: 'What it was made of, which may be gone by now; absent in instances from before this was stored' })
