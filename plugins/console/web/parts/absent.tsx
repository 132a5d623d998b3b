// Shown instead of what the server has no part for: its plugin is turned off, is missing, or could not start.
import { href } from '../state/route.ts'
import { Empty } from './empty.tsx'

/** @param what continues "This server has no" */
export function Absent ({ what }: { readonly what: string }) {
  return <Empty title={`This server has no ${what}.`}>The plugin for it does not run. <a href={href(['host', 'plugins'])}>The plugins</a> tell why.</Empty>
}
