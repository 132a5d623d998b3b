// An instance in the API's form, and commands that create the same one elsewhere.
import type { Instance } from '../../api/types.ts'
import { Copy } from '../../parts/copy.tsx'

export function AsCode ({ instance }: { readonly instance: Instance }) {
  return (
    <>
      <h2>Command</h2><Copy label='berth command' text={`berth inspect ${instance.id}`} />
      <h2>curl</h2><Copy label='curl command' text={`curl -H "Authorization: Bearer $KEY" ${location.origin}/instances/${instance.id}`} />
      <h2>JSON</h2><Copy label='JSON' text={JSON.stringify(instance, undefined, 2)} />
    </>
  )
}
