/** Every provider that promises to keep the contract, with the file that puts it to the proof. One line joins another. */
export const PROVIDERS = {
  host: 'test/activities/providers/host.test.ts',
  kubernetes: 'test/activities/providers/kubernetes.test.ts',
  gcp: 'test/activities/providers/gcp.test.ts',
};
