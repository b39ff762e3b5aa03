"""EXIF, ICC and XMP blocks: valid ones to start from, and the readers."""

from imaging.making import CMYK, P3, SRGB, camera_exif, gray_profile, noise, rgb_profile


def read_exif(data: bytes) -> None:
    """Parse an EXIF block, and the block that is left of it."""
    from srno.imaging import exif

    facts = exif.from_block(data)
    assert facts.orientation in range(1, 9)
    if facts.block is not None:
        exif.from_block(facts.block)


def read_icc(data: bytes) -> None:
    """Use a profile for gray, colour and ink."""
    from srno.imaging import icc

    for channels in (1, 3):
        samples = noise(3, 3, channels)
        icc.match_profile(samples, data)
        icc.to_srgb(samples, data)
        icc.is_srgb(data, channels)
    if icc.space(data) == "CMYK":  # any other is replaced by the same profile, which takes most of the time
        icc.cmyk_to_srgb(noise(3, 3, 4), data)


def read_xmp(data: bytes) -> None:
    """Clean a packet of XMP; the result must be stable."""
    from srno.imaging.metadata import clean_xmp

    cleaned = clean_xmp(data)
    assert cleaned is None or clean_xmp(cleaned) == cleaned


def exif_blocks() -> list[bytes]:
    return [camera_exif(6).tobytes(), camera_exif(3).tobytes().removeprefix(b"Exif\0\0")]


def xmp_packets() -> list[bytes]:
    start = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    about = '<rdf:Description rdf:about="" xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6">'
    end = "<tiff:ImageWidth>12</tiff:ImageWidth></rdf:Description></rdf:RDF></x:xmpmeta>"
    return [(start + about + end).encode(), (start + "</rdf:RDF></x:xmpmeta>").encode("utf-16")]


def icc_profiles() -> list[bytes]:
    return [P3, gray_profile(2.2), rgb_profile(1.8, 2.0, 2.2), P3, gray_profile(1.0), SRGB, CMYK]
