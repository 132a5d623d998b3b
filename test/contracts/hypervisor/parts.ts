/** All groups of ../hypervisor.ts, with commas, in parts for runs that play some of them. */
export const PARTS: readonly string[] = ['launching,stream,state', 'ending,attaching,output', 'separation,replacing', 'plugging,private,balloon', 'network', 'imaging', 'changing', 'forking', 'leaving']
