// The page that the address names.
import { useEffect } from 'preact/hooks'
import { Empty } from '../parts/empty.tsx'
import { Builds } from '../pages/builds.tsx'
import { Devices } from '../pages/devices.tsx'
import { Egress } from '../pages/egress.tsx'
import { Events } from '../pages/events.tsx'
import { Family } from '../pages/family.tsx'
import { Host } from '../pages/host.tsx'
import { Images } from '../pages/images.tsx'
import { Ingresses } from '../pages/ingresses.tsx'
import { InstanceDetail } from '../pages/instance/detail.tsx'
import { Instances } from '../pages/instances.tsx'
import { Keys } from '../pages/keys.tsx'
import { Snapshots } from '../pages/snapshots.tsx'
import { Volumes } from '../pages/volumes.tsx'
import { Webhooks } from '../pages/webhooks.tsx'
import { route } from '../state/route.ts'
import { allows } from '../state/session.ts'
import { PAGES } from './pages.ts'

const VIEWS = {
  builds: Builds, devices: Devices, egress: Egress, events: Events, family: Family, host: Host, images: Images, ingresses: Ingresses, instances: Instances, keys: Keys, snapshots: Snapshots, volumes: Volumes, webhooks: Webhooks
}

export function Page () {
  const [id = 'instances', item, tab = 'overview'] = route.value.parts
  const entry = PAGES.find((page) => page.id === id)
  useEffect(() => { document.title = `${item === undefined ? '' : `${item} · `}${entry?.title ?? 'Not here'} · Berth` }, [id, item])
  if (entry === undefined) return <Empty title='There is no such page.'>The pages that there are stand in the navigation.</Empty>
  if (entry.scope !== undefined && !allows(entry.scope)) return <><h1>{entry.title}</h1><Empty title='This key may not look here.'>It lacks the scope <code>{entry.scope}</code>.</Empty></>
  if (id === 'instances' && item !== undefined) return <InstanceDetail key={item} id={item} tab={tab} />
  const View = VIEWS[id as keyof typeof VIEWS]
  return <View />
}
