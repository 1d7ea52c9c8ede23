// The flame graph: widths are shares of the time, a click makes a node fill the width, keys walk, a kernel is chosen.
#include <QtTest>

#include <QSignalSpy>

#include "widgets/flame/flame_view.h"

using namespace stagewright;

namespace {

// step 100: forward 60 (gemm 45, norm 15), backward 40 (gemm 40)
std::shared_ptr<const RangeStacks> threeStacks()
{
    RangeStacks stacks;
    stacks.device = true;
    stacks.total = 100'000;
    const auto add = [&](const char* name, int parent, Nanos total, Nanos self, std::optional<KernelClass> of = {}) {
        StackNode node;
        node.name = name;
        node.parent = parent;
        node.depth = parent < 0 ? 0 : stacks.nodes[static_cast<std::size_t>(parent)].depth + 1;
        node.total = total;
        node.self = self;
        node.of = of;
        node.count = 2;
        node.longest = static_cast<SpanId>(10 + stacks.nodes.size());
        stacks.nodes.push_back(node);
    };
    add("step", -1, 100'000, 0);
    add("forward", 0, 60'000, 0);
    add("backward", 0, 40'000, 0);
    add("gemm", 1, 45'000, 45'000, KernelClass::MatrixProduct);
    add("gemm", 2, 40'000, 40'000, KernelClass::MatrixProduct);
    add("norm", 1, 15'000, 15'000, KernelClass::Normalisation);
    return std::make_shared<const RangeStacks>(std::move(stacks));
}

} // namespace

class TestFlameView : public QObject {
    Q_OBJECT

private slots:
    void widthsAreShares()
    {
        FlameView view;
        view.resize(1000, 200);
        view.setStacks(threeStacks(), {}, QStringLiteral("Step 1"));
        view.show();
        const double width = view.viewport()->width();
        QCOMPARE(view.place(0), QRectF(0, 24, width, 19));
        QVERIFY(std::abs(view.place(1).width() - 0.6 * width) < 1e-6 &&
                std::abs(view.place(2).left() - 0.6 * width) < 1e-6);
        QVERIFY(std::abs(view.place(5).left() - 0.45 * width) < 1e-6 &&
                std::abs(view.place(4).left() - 0.6 * width) < 1e-6);
        QVERIFY(view.place(3).top() > view.place(1).top());
        QVERIFY2(view.lineText().contains(QStringLiteral("Step 1")), qPrintable(view.lineText()));
    }

    void clicksZoomAndChoose()
    {
        FlameView view;
        view.resize(1000, 200);
        view.setStacks(threeStacks(), {}, QStringLiteral("Step 1"));
        view.show();
        QSignalSpy chosen(&view, &FlameView::spanChosen);
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.place(2).center().toPoint());
        QCOMPARE(view.root(), 2);
        const double width = view.viewport()->width();
        QCOMPARE(view.place(2).width(), width);
        QCOMPARE(view.place(0).width(), width); // its holder stays above
        QVERIFY(view.place(1).isEmpty() && view.place(3).isEmpty());
        QVERIFY2(view.lineText().startsWith(QStringLiteral("step › backward: ")) &&
                     view.lineText().contains(QStringLiteral("40.0 %")),
                 qPrintable(view.lineText()));
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.place(4).center().toPoint());
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].value<SpanId>(), SpanId(14));
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.place(0).center().toPoint());
        QCOMPARE(view.root(), 0);
        QVERIFY(!view.place(1).isEmpty());
    }

    void keysWalk()
    {
        FlameView view;
        view.resize(1000, 200);
        view.setStacks(threeStacks(), {}, QStringLiteral("Step 1"));
        view.show();
        QSignalSpy chosen(&view, &FlameView::spanChosen);
        QTest::keyClick(&view, Qt::Key_Down);
        QCOMPARE(view.current(), 0);
        QTest::keyClick(&view, Qt::Key_Down);
        QTest::keyClick(&view, Qt::Key_Right);
        QCOMPARE(view.current(), 2);
        QTest::keyClick(&view, Qt::Key_Return);
        QCOMPARE(view.root(), 2);
        QTest::keyClick(&view, Qt::Key_Down);
        QTest::keyClick(&view, Qt::Key_Return);
        QCOMPARE(chosen.size(), 1);
        QTest::keyClick(&view, Qt::Key_Backspace);
        QCOMPARE(view.root(), 0);
        QTest::keyClick(&view, Qt::Key_Up);
        QCOMPARE(view.current(), 2);
        QVERIFY(!view.lineText().contains(QStringLiteral("Esc")));
        QTest::keyClick(&view, Qt::Key_Return); // what is shown alone says the way back
        QVERIFY2(view.lineText().contains(QStringLiteral("Esc: all")), qPrintable(view.lineText()));
        QTest::keyClick(&view, Qt::Key_Escape);
        QCOMPARE(view.root(), -1);
        QVERIFY(!view.accessibleDescription().isEmpty());
    }

    void nothingHasAReason()
    {
        FlameView view;
        view.resize(600, 100);
        view.setStacks(std::make_shared<const RangeStacks>(), {}, QStringLiteral("Step 1"),
                       QStringLiteral("This step has no kernels and no ranges."));
        QCOMPARE(view.lineText(), QStringLiteral("This step has no kernels and no ranges."));
        QVERIFY(view.stacks() == nullptr);
        view.zoomTo(3);
        QTest::keyClick(&view, Qt::Key_Down);
        view.setStacks(nullptr, {}, {});
    }
};

QTEST_MAIN(TestFlameView)
#include "tst_flame_view.moc"
