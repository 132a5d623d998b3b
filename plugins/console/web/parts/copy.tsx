// A text with a button that copies it.
import { say } from '../state/notices.ts'
import { Button } from './button.tsx'

export function Copy ({ text, label }: { readonly text: string, readonly label: string }) {
  return <div class='copy'><pre tabIndex={0} role='region' aria-label={label}>{text}</pre><Button label={`Copy ${label}`} onPress={async () => { await navigator.clipboard.writeText(text); say(`${label}: copied`) }}>Copy</Button></div>
}
