// Deletes one object after a confirmation.
import { call } from '../api/call.ts'
import { ask } from '../parts/confirm.tsx'
import { say } from '../state/notices.ts'

export function askToRemove ({ url, name, goes, verb = 'Delete', done }: { readonly url: string, readonly name: string, readonly goes: readonly string[], readonly verb?: string, readonly done: () => void }): void {
  ask({
    title: `${verb} ${name}?`, text: 'This cannot be taken back. What goes:', goes, verb,
    act: async () => {
      await call('DELETE', url)
      say(`${name}: gone`)
      done()
    }
  })
}
