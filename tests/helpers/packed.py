"""Archives of a folder, as a release is packed. Test support."""

import shutil
import tarfile
from pathlib import Path


def pack_tar(folder: Path) -> Path:
    path = folder.with_name("release.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return path


def pack_zip(folder: Path) -> Path:
    return Path(
        shutil.make_archive(str(folder.with_name("release")), "zip", folder.parent, folder.name)
    )
