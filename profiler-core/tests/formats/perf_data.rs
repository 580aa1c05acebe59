//! perf's own recordings.

use profiler_core::profile::LocId;

use crate::{bytes, labels, profile, types};

#[test]
fn recordings_are_read_as_they_are_and_compressed() {
    for (name, event, samples) in [("sleep.perf.data", "cycles:Pu", 7), ("sleep.zstd.perf.data", "cycles:P", 8)] {
        let oracle = crate::text(&format!("public/oracle/{}", name.replace("perf.data", "perf.data.txt")));
        assert!(oracle.contains(&format!("\"SAMPLE\": {samples}")) && oracle.contains(event), "{oracle}");
        let profile = profile(bytes(&format!("public/{name}")));
        assert_eq!(types(&profile), [format!("{event}/count")], "{name}");
        assert_eq!(profile.samples().len(), samples, "{name}");
        assert!(
            labels(&profile, samples - 1).contains(&"process=sleep".to_owned()),
            "{:?}",
            labels(&profile, samples - 1)
        );
        // Addresses are in binaries that are known by path; the kernel's only where its map was
        // recorded.
        let locations = profile.locations();
        let is_user = |id: &LocId| locations.address(*id) < 1 << 63;
        assert!(locations.ids().filter(is_user).all(|id| !locations.mapping(id).is_none()), "{name}");
        assert!(locations.ids().any(|id| !locations.mapping(id).is_none()), "{name}");
        for id in locations.ids().filter(|id| !locations.mapping(*id).is_none()) {
            let mapping = profile.mapping(locations.mapping(id));
            let address = locations.address(id);
            assert!(
                (mapping.memory_start..mapping.memory_limit).contains(&address),
                "{name}: {address:#x} {mapping:?}"
            );
        }
        let notes: Vec<&String> = profile.notes().iter().filter(|note| !note.contains("lost")).collect();
        assert!(notes.is_empty(), "{name}: {notes:?}");
    }
}

#[test]
fn build_ids_are_those_of_the_end_of_the_file() {
    let profile = profile(bytes("public/sleep.perf.data"));
    let with_id = profile.mappings().iter().filter(|mapping| !profile.text(mapping.build_id).is_empty()).count();
    assert!(with_id > 0);
    for mapping in profile.mappings() {
        let id = profile.text(mapping.build_id);
        assert!(id.is_empty() || (id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit())), "{id}");
    }
}
