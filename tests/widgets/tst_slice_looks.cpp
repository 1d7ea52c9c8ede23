// How ops of every form are drawn: pairs in two halves, chunks and copies in their own tints, recompute striped, labels
// with slice, count and half.
#include <QtTest>

#include "painted_timeline.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/slice_painter.h"

using namespace stagewright;

namespace {

std::shared_ptr<const Timeline> timelineOfRows(std::vector<std::vector<const char*>> rows, Placement placement,
                                               int stages, int microbatches,
                                               std::vector<std::vector<std::uint32_t>> paired = {})
{
    Schedule schedule;
    schedule.ranks = static_cast<int>(rows.size());
    schedule.stages = stages;
    schedule.microbatches = microbatches;
    schedule.placement = std::move(placement);
    for (const auto& row : rows) {
        schedule.order.emplace_back();
        for (const char* text : row) schedule.order.back().push_back(*parseOp(text));
    }
    schedule.paired = std::move(paired);
    const auto timeline = simulatedTimeline(schedule, CostModel::uniform(schedule));
    return timeline ? *timeline : nullptr;
}

} // namespace

class TestSliceLooks : public QObject {
    Q_OBJECT
private slots:
    void pairsLieAboveOneAnother()
    {
        // 0F1 and 0B0 are issued together.
        const auto timeline = timelineOfRows({{"0F0", "0F1", "0B0", "0B1"}}, Placement::loop(1, 1), 1, 2, {{1}});
        QVERIFY(timeline);
        samples::PaintedTimeline shown(timeline);
        const QRectF upper = shown.rectOfOp("0F1"), lower = shown.rectOfOp("0B0"), whole = shown.rectOfOp("0F0");
        QCOMPARE(upper.left(), lower.left());
        QCOMPARE(upper.width(), lower.width());
        QCOMPARE(upper.height(), whole.height() / 2);
        QCOMPARE(lower.top(), upper.bottom());
        QCOMPARE(shown.view.scene().spanAt(upper.center()).span, samples::spanOf(*timeline, "0F1"));
        QCOMPARE(shown.view.scene().spanAt(lower.center()).span, samples::spanOf(*timeline, "0B0"));
        for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()}) {
            const QImage image = shown.painted(*theme);
            const int x = static_cast<int>(upper.left() + upper.width() / 4);
            QCOMPARE(image.pixelColor(x, static_cast<int>(upper.center().y())), theme->of(OpKind::Forward).fill);
            QCOMPARE(image.pixelColor(x, static_cast<int>(lower.center().y())), theme->of(OpKind::Backward).fill);
        }
        // Ink stays proportional to time: the two halves fill the pair's interval and nothing else.
        const LaneData& lane = shown.view.panels()[0]->ranks[0].compute;
        Nanos ink = 0;
        for (const Slice& slice : lane.slices()) ink += slice.end() - slice.begin();
        QCOMPARE(ink, timeline->end() - timeline->begin());
    }

    void chunksAreTinted()
    {
        const auto timeline = timelineOfRows({{"0F0", "1F0", "1B0", "0B0"}}, Placement::loop(1, 2), 2, 1);
        QVERIFY(timeline);
        samples::PaintedTimeline shown(timeline);
        for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()}) {
            const QImage image = shown.painted(*theme);
            const auto at = [&](const char* op) {
                const QRectF rect = shown.rectOfOp(op);
                return image.pixelColor(static_cast<int>(rect.left() + rect.width() / 4),
                                        static_cast<int>(rect.center().y()));
            };
            QCOMPARE(at("0F0"), theme->of(Paint::Forward, 0).fill);
            QCOMPARE(at("1F0"), theme->of(Paint::Forward, 1).fill);
            QCOMPARE(at("1B0"), theme->of(Paint::Backward, 1).fill);
            QVERIFY(at("0F0") != at("1F0"));
        }
        Legend legend;
        legend.setPanels(shown.view.panels());
        QVERIFY(legend.accessibleDescription().contains("further stages"));
    }

    void copiesAreTintedByTheirChain()
    {
        // Two chains over two ranks: microbatch 0 goes down, 1 up. Each chain has one tint on every rank.
        const auto timeline = timelineOfRows({{"0F0", "1F1", "1B1", "0B0"}, {"0F1", "1F0", "1B0", "0B1"}},
                                             Placement::bidirectional(2, 2), 2, 2);
        QVERIFY(timeline);
        samples::PaintedTimeline shown(timeline);
        for (const PanelRank& rank : shown.view.panels()[0]->ranks)
            for (const Slice& slice : rank.compute.slices())
                QCOMPARE(static_cast<int>(slice.tint), slice.microbatchOr(-1));
        Legend legend;
        legend.setPanels(shown.view.panels());
        QVERIFY(legend.accessibleDescription().contains("second chain"));
    }

    void recomputeIsStriped()
    {
        const auto timeline = timelineOfRows({{"0F0", "0R0", "0B0"}}, Placement::loop(1, 1), 1, 1);
        QVERIFY(timeline);
        samples::PaintedTimeline shown(timeline);
        const QImage image = shown.painted(Theme::light());
        const auto colours = [&](const QRectF& rect) {
            QSet<QRgb> found;
            for (int x = static_cast<int>(rect.left()) + 6; x < rect.left() + 40; ++x)
                found.insert(image.pixel(x, static_cast<int>(rect.top()) + 10));
            return found.size();
        };
        QCOMPARE(colours(shown.rectOfOp("0F0")), 1);
        if (shown.rectOfOp("0R0").width() > 50) QVERIFY(colours(shown.rectOfOp("0R0")) > 1);
    }

    void labelsSayEverything()
    {
        QCOMPARE(sliceLabel(*parseOp("0F3.1"), 60), QStringLiteral("3.1"));
        QCOMPARE(sliceLabel(*parseOp("0F3.1"), 120), QStringLiteral("F3.1"));
        QCOMPARE(sliceLabel(*parseOp("0W0-3"), 60), QStringLiteral("0") + QChar(0x2013) + QStringLiteral("3"));
        QCOMPARE(sliceLabel(*parseOp("1B4h1"), 60), QStringLiteral("4h1"));
        QCOMPARE(sliceLabel(*parseOp("1R4"), 20), QStringLiteral("R4"));
        QCOMPARE(sliceLabel(makeOp(OpKind::Optimizer, 1), 60), QStringLiteral("OPT"));
        QCOMPARE(briefLabel(*parseOp("0F3.0")), QStringLiteral("3"));
        QVERIFY(briefLabel(*parseOp("0F3.1")).isEmpty());
    }

    void tintsCanBeRead()
    {
        const auto luminance = [](const QColor& c) {
            const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
            return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
        };
        for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()})
            for (std::size_t p = 0; p < paintCount; ++p)
                for (int tint = 0; tint < tintCount; ++tint) {
                    const Fill& fill = theme->of(static_cast<Paint>(p), tint);
                    const double a = luminance(fill.fill), b = luminance(fill.label);
                    QVERIFY2((std::max(a, b) + 0.05) / (std::min(a, b) + 0.05) >= 4.5, qPrintable(fill.fill.name()));
                }
    }
};

QTEST_MAIN(TestSliceLooks)
#include "tst_slice_looks.moc"
