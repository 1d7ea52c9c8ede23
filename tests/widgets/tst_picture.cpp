// Pictures for export: formats and suffixes, sizes on screen and on paper, captions, omitted parts, embedded images,
// hatch.
#include <QBuffer>
#include <QImageReader>
#include <QRegularExpression>
#include <QSettings>
#include <QTemporaryDir>
#include <QXmlStreamReader>
#include <QtTest>

#include "sample_timelines.h"
#include "widgets/export/export_dialog.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestPicture : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    ViewState m_state;
    TimelineView m_view{&m_state};
    Legend m_legend;

    PictureContent content() const
    {
        PictureContent c;
        c.title = QStringLiteral("1F1B <4 ranks> & more");
        c.caption = {QStringLiteral("Simulated with costs: F=1, B=2; not stored")};
        const TimelineView* view = &m_view;
        const Legend* legend = &m_legend;
        c.parts.push_back({PicturePart::Role::View, QStringLiteral("Timeline"),
                           [view](double) { return view->scene().contentHeight(); }, true,
                           [view](QPainter& p, const QRectF& r, const PaintRequest& q) {
                               view->paintTo(p, r, q.theme, PaintedMarks{false, q.selection, q.notes});
                           },
                           view->scene().visibleSlices()});
        c.parts.push_back(
            {PicturePart::Role::Legend,
             {},
             [legend](double width) { return legend->heightFor(width); },
             false,
             [legend](QPainter& p, const QRectF& r, const PaintRequest& q) { legend->paintTo(p, r, q.theme); },
             0});
        return c;
    }

private slots:
    void initTestCase()
    {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_dir.path());
        m_view.resize(1200, 300);
        m_view.setRun(samples::simulated("zb-h1"));
        m_legend.setPanels(m_view.panels());
    }

    void suffixAndFormatAgree()
    {
        QCOMPARE(*pictureKindOf("a.SVG"), PictureKind::Svg);
        QCOMPARE(*pictureKindOf("a.pdf", PictureKind::Pdf), PictureKind::Pdf);
        QCOMPARE(*pictureKindOf("/dev/stdout", PictureKind::Png), PictureKind::Png);
        const auto both = pictureKindOf("pic.png", PictureKind::Svg);
        QVERIFY(!both && both.error().code == ErrorCode::Usage);
        QCOMPARE(QString::fromStdString(both.error().message),
                 QString("file pic.png: the format is svg, the suffix png"));
        QVERIFY(!pictureKindOf("a.bmp") && !pictureKindOf("a"));
    }

    void paperIsAsWideAsAsked()
    {
        PictureStyle style;
        style.look = PictureStyle::Look::Paper;
        for (const double mm : {oneColumnMm, twoColumnsMm}) {
            style.widthMm = mm;
            QVERIFY(std::abs(pictureMillimetres(content(), style).width() - mm) < 0.01);
            const QString svg = QString::fromUtf8(*pictureBytes(content(), style, PictureKind::Svg));
            const auto match = QRegularExpression("<svg width=\"([0-9.]+)mm\"").match(svg);
            QVERIFY(match.hasMatch());
            QVERIFY2(std::abs(match.captured(1).toDouble() - mm) < 0.02, qPrintable(match.captured(1)));
            const QByteArray pdf = *pictureBytes(content(), style, PictureKind::Pdf);
            const auto box = QRegularExpression("MediaBox \\[0 0 ([0-9.]+) ").match(QString::fromLatin1(pdf));
            QVERIFY(box.hasMatch());
            QVERIFY(std::abs(box.captured(1).toDouble() - mm / 25.4 * 72) < 1);
        }
        style.dpi = 300;
        const QImage image = QImage::fromData(*pictureBytes(content(), style, PictureKind::Png));
        QVERIFY(std::abs(image.width() - twoColumnsMm / 25.4 * 300) <= 1);
        QVERIFY(std::abs(image.dotsPerMeterX() - 300 / 0.0254) < 2);
        QCOMPARE(image.pixelColor(image.width() - 2, 2), QColor(Qt::white));
    }

    void svgIsWellFormedAndSaysWhatItIs()
    {
        const QByteArray svg = *pictureBytes(content(), {}, PictureKind::Svg);
        QXmlStreamReader reader(svg);
        QString texts;
        while (!reader.atEnd())
            if (reader.readNext() == QXmlStreamReader::Characters) texts += reader.text();
        QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
        QVERIFY(texts.contains("1F1B <4 ranks> & more") && texts.contains("F=1, B=2") && texts.contains("Bubble"));
        QVERIFY(svg.contains("sans-serif"));
    }

    void namesHoldNoControlCharacters()
    {
        const QString hostile = QString::fromUtf8("a\x01\x07\x0b\x1b[2J\x7f\xc2\x85\xc2\x9b\xe2\x80\xae<b>z");
        PictureContent c = content();
        c.title = hostile;
        c.caption = {hostile};
        c.parts.front().paint = [hostile](QPainter& p, const QRectF& r, const PaintRequest&) {
            p.drawText(r.center(), hostile);
        };
        const QByteArray svg = *pictureBytes(c, {}, PictureKind::Svg);
        QXmlStreamReader reader(svg);
        QString texts;
        while (!reader.atEnd())
            if (reader.readNext() == QXmlStreamReader::Characters) texts += reader.text();
        QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
        QVERIFY2(texts.contains("a\\x01\\x07\\x0b\\x1b[2J\\x7f\\u0085\\u009b\\u202e<b>z"), qPrintable(texts.left(400)));
        for (const QChar one : QString::fromUtf8(svg))
            QVERIFY2(one == '\n' || one == '\t' || (one.category() != QChar::Other_Control && one.unicode() != 0x202E),
                     qPrintable(QString::number(one.unicode(), 16)));
        const QByteArray pdf = *pictureBytes(c, {}, PictureKind::Pdf);
        const QByteArray info = pdf.mid(pdf.indexOf("/Title"), 400);
        QVERIFY(!info.contains(QByteArray("\x20\x2e", 2)));
    }

    void vectorHatchStaysInsideIdleTime()
    {
        // No line of an SVG may leave the picture: the generator knows no clip.
        const QByteArray svg = *pictureBytes(content(), {}, PictureKind::Svg);
        const QSizeF size = pictureSize(content(), {});
        QXmlStreamReader reader(svg);
        int lines = 0;
        while (!reader.atEnd()) {
            if (reader.readNext() != QXmlStreamReader::StartElement || reader.name() != QLatin1String("polyline"))
                continue;
            for (const QString& point : reader.attributes().value("points").toString().split(' ', Qt::SkipEmptyParts)) {
                ++lines;
                const double x = point.section(',', 0, 0).toDouble();
                QVERIFY2(x >= -0.6 && x <= size.width() + 0.6, qPrintable(point));
            }
        }
        QVERIFY(lines > 100);
    }

    void partsCanBeLeftOut()
    {
        PictureStyle style;
        const double whole = pictureSize(content(), style).height();
        style.caption = false;
        const double bare = pictureSize(content(), style).height();
        QVERIFY(bare < whole - 20);
        style.legend = false;
        QCOMPARE(pictureSize(content(), style).height(), bare - 28);
        style.without << "Timeline";
        const auto nothing = pictureBytes(content(), style, PictureKind::Png);
        QVERIFY(!nothing && nothing.error().code == ErrorCode::Usage);
        style = {};
        style.pixels = {1280, 720};
        QCOMPARE(pictureSize(content(), style), QSizeF(1280, 720));
        const QImage image = QImage::fromData(*pictureBytes(content(), style, PictureKind::Png));
        QCOMPARE(image.size(), QSize(2560, 1440));
        style.scale = 40;
        const auto large = pictureBytes(content(), style, PictureKind::Png);
        QVERIFY(!large && large.error().code == ErrorCode::Usage);
    }

    void manySlicesAreEmbedded()
    {
        PictureContent c = content();
        c.parts.front().slices = mostVectorSlices + 1;
        QVERIFY(embedsImage(c, {}, PictureKind::Svg) && !embedsImage(c, {}, PictureKind::Png) &&
                !embedsImage(content(), {}, PictureKind::Svg));
        const QByteArray svg = *pictureBytes(c, {}, PictureKind::Svg);
        QCOMPARE(svg.count("<image"), 1);
        QVERIFY(svg.contains("data:image/png;base64"));
        QVERIFY(svg.contains("<text")); // the caption stays text
    }

    void hatchTellsKindsApartInGrey()
    {
        PictureStyle style;
        style.look = PictureStyle::Look::Paper;
        const QImage plain = pictureImage(content(), style, 2);
        style.hatched = true;
        const QImage hatched = pictureImage(content(), style, 2);
        QCOMPARE(plain.size(), hatched.size());
        QVERIFY(plain != hatched);
        const QRgb backward = Theme::light().of(Paint::Backward).fill.rgb(),
                   forward = Theme::light().of(Paint::Forward).fill.rgb();
        int before = 0, after = 0, forwardBefore = 0, forwardAfter = 0;
        for (int y = 0; y < plain.height(); ++y)
            for (int x = 0; x < plain.width(); ++x) {
                before += plain.pixel(x, y) == backward;
                after += hatched.pixel(x, y) == backward;
                forwardBefore += plain.pixel(x, y) == forward;
                forwardAfter += hatched.pixel(x, y) == forward;
            }
        QVERIFY2(before > 1000 && after < before * 0.85 && after > before * 0.3,
                 qPrintable(QString("%1 %2").arg(before).arg(after)));
        QVERIFY2(forwardBefore > 1000 && std::abs(forwardAfter - forwardBefore) < 0.05 * forwardBefore,
                 qPrintable(QString("%1 %2").arg(forwardBefore).arg(forwardAfter)));
    }

    void paperShowsNoSelection()
    {
        PictureStyle paper;
        paper.look = PictureStyle::Look::Paper;
        const QImage before = pictureImage(content(), paper, 1), screen = pictureImage(content(), {}, 1);
        m_state.select(SpanRef{0, 3});
        QCOMPARE(pictureImage(content(), paper, 1), before);
        QVERIFY(pictureImage(content(), {}, 1) != screen);
        m_state.select({});
    }

    void dialogPreviewsAndRemembers()
    {
        PictureStyle chosen;
        {
            ExportDialog dialog(content(), {1200, 0});
            dialog.show();
            QVERIFY(QTest::qWaitForWindowExposed(&dialog));
            QTRY_VERIFY(dialog.settled());
            QVERIFY(!dialog.preview().isNull());
            const QImage first = dialog.preview();
            chosen = dialog.style();
            chosen.look = PictureStyle::Look::Paper;
            chosen.widthMm = 84;
            chosen.hatched = true;
            dialog.setStyle(chosen);
            dialog.setKind(PictureKind::Pdf);
            QTRY_VERIFY(dialog.settled());
            QVERIFY(dialog.preview() != first);
            QVERIFY2(dialog.sizeText().startsWith("84.0 × "), qPrintable(dialog.sizeText()));
            QSignalSpy spy(&dialog, &ExportDialog::saveAsked);
            QTest::keyClick(&dialog, Qt::Key_Return);
            QCOMPARE(spy.size(), 1);
        }
        ExportDialog again(content(), {1200, 0});
        QCOMPARE(again.kind(), PictureKind::Pdf);
        QCOMPARE(again.style(), chosen);
        for (QWidget* widget : again.findChildren<QWidget*>())
            if (widget->focusPolicy() & Qt::TabFocus && widget->parentWidget() == &again)
                QVERIFY2(!widget->accessibleName().isEmpty() || !widget->property("text").toString().isEmpty(),
                         widget->metaObject()->className());
    }
};

QTEST_MAIN(TestPicture)
#include "tst_picture.moc"
